package web

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// What x/sys has no function for.
var (
	kernel32      = windows.NewLazySystemDLL("kernel32.dll")
	getMemoryInfo = kernel32.NewProc("K32GetProcessMemoryInfo")
	getHandles    = kernel32.NewProc("GetProcessHandleCount")
)

// mostHandles is how many a process may have (learn.microsoft.com, "Kernel objects").
const mostHandles = 16 << 20

// memoryCounters is PROCESS_MEMORY_COUNTERS_EX.
type memoryCounters struct {
	size, pageFaults                                         uint32
	peakWorkingSet, workingSet                               uintptr
	peakPagedPool, pagedPool, peakNonPagedPool, nonPagedPool uintptr
	pagefile, peakPagefile, private                          uintptr
}

// read asks the system.
func (p *process) read(int) {
	self := windows.CurrentProcess()
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(self, &created, &exited, &kernel, &user) == nil {
		p.start = float64(created.Nanoseconds()) / 1e9
		// Durations, in units of 100 ns: Filetime's own method counts from 1601.
		spent := func(t windows.Filetime) time.Duration {
			return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
		}
		p.cpu = spent(kernel) + spent(user)
	}
	var m memoryCounters
	m.size = uint32(unsafe.Sizeof(m))
	if ok, _, _ := getMemoryInfo.Call(uintptr(self), uintptr(unsafe.Pointer(&m)), uintptr(m.size)); ok != 0 {
		p.resident, p.virtual = int64(m.workingSet), int64(m.private)
	}
	var handles uint32
	if ok, _, _ := getHandles.Call(uintptr(self), uintptr(unsafe.Pointer(&handles))); ok != 0 {
		p.open, p.most = int64(handles), mostHandles
	}
}
