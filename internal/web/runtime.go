package web

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// What Go programs and processes tell everywhere, under the names that Prometheus'
// client library gives it, so that the usual dashboards show it.
var (
	goInfoFamily       = &family{"go_info", "Information about the Go environment.", []string{"version"}}
	goRoutinesFamily   = &family{"go_goroutines", "Number of goroutines that currently exist.", nil}
	goThreadsFamily    = &family{"go_threads", "Number of OS threads created.", nil}
	goMaxProcsFamily   = &family{"go_sched_gomaxprocs_threads", "How many threads may run Go code at once (GOMAXPROCS).", nil}
	goPercentFamily    = &family{"go_gc_gogc_percent", "Heap size target percentage (GOGC).", nil}
	goLimitFamily      = &family{"go_gc_gomemlimit_bytes", "Memory limit of the Go runtime (GOMEMLIMIT).", nil}
	goPausesFamily     = &family{"go_gc_duration_seconds", "Wall-time pauses of the garbage collector.", nil}
	goAllocFamily      = &family{"go_memstats_alloc_bytes", "Bytes of heap objects, those that are not yet swept among them.", nil}
	goAllocTotalFamily = &family{"go_memstats_alloc_bytes_total", "Bytes allocated for heap objects till now.", nil}
	goMallocsFamily    = &family{"go_memstats_mallocs_total", "Heap objects allocated till now.", nil}
	goFreesFamily      = &family{"go_memstats_frees_total", "Heap objects freed till now.", nil}
	goSysFamily        = &family{"go_memstats_sys_bytes", "Bytes obtained from the system.", nil}
	goHeapAllocFamily  = &family{"go_memstats_heap_alloc_bytes", "Bytes of heap objects, as alloc_bytes.", nil}
	goHeapSysFamily    = &family{"go_memstats_heap_sys_bytes", "Bytes of heap obtained from the system.", nil}
	goHeapIdleFamily   = &family{"go_memstats_heap_idle_bytes", "Bytes of heap in spans without objects.", nil}
	goHeapInuseFamily  = &family{"go_memstats_heap_inuse_bytes", "Bytes of heap in spans with objects.", nil}
	goHeapBackFamily   = &family{"go_memstats_heap_released_bytes", "Bytes of heap given back to the system.", nil}
	goObjectsFamily    = &family{"go_memstats_heap_objects", "Heap objects that are allocated.", nil}
	goStackInuseFamily = &family{"go_memstats_stack_inuse_bytes", "Bytes of stacks in use.", nil}
	goStackSysFamily   = &family{"go_memstats_stack_sys_bytes", "Bytes of stacks obtained from the system.", nil}
	goMSpanFamily      = &family{"go_memstats_mspan_inuse_bytes", "Bytes of mspan structures in use.", nil}
	goMSpanSysFamily   = &family{"go_memstats_mspan_sys_bytes", "Bytes of mspan structures obtained from the system.", nil}
	goMCacheFamily     = &family{"go_memstats_mcache_inuse_bytes", "Bytes of mcache structures in use.", nil}
	goMCacheSysFamily  = &family{"go_memstats_mcache_sys_bytes", "Bytes of mcache structures obtained from the system.", nil}
	goBuckHashFamily   = &family{"go_memstats_buck_hash_sys_bytes", "Bytes of the profiler's hash table.", nil}
	goGCSysFamily      = &family{"go_memstats_gc_sys_bytes", "Bytes of the garbage collector's own data.", nil}
	goOtherSysFamily   = &family{"go_memstats_other_sys_bytes", "Bytes of everything else obtained from the system.", nil}
	goNextGCFamily     = &family{"go_memstats_next_gc_bytes", "Heap size at which the next garbage collection begins.", nil}
	goLastGCFamily     = &family{"go_memstats_last_gc_time_seconds", "When the last garbage collection ended.", nil}

	processCPUFamily      = &family{"process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", nil}
	processResidentFamily = &family{"process_resident_memory_bytes", "Resident memory size in bytes.", nil}
	processVirtualFamily  = &family{"process_virtual_memory_bytes", "Virtual memory size in bytes.", nil}
	processRoomFamily     = &family{"process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes.", nil}
	processOpenFamily     = &family{"process_open_fds", "Number of open file descriptors; of handles on Windows.", nil}
	processMaxFamily      = &family{"process_max_fds", "Maximum number of open file descriptors.", nil}
	processStartFamily    = &family{"process_start_time_seconds", "Start time of the process since unix epoch in seconds.", nil}
)

// exposeRuntime gives the metrics of the Go runtime.
func exposeRuntime(e *exposition) {
	e.gauge(goInfoFamily, 1, runtime.Version())
	e.gauge(goRoutinesFamily, float64(runtime.NumGoroutine()))
	threads, _ := runtime.ThreadCreateProfile(nil)
	e.gauge(goThreadsFamily, float64(threads))
	e.gauge(goMaxProcsFamily, float64(runtime.GOMAXPROCS(0)))
	settings := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(settings)
	for i, f := range []*family{goPercentFamily, goLimitFamily} {
		if v := settings[i].Value; v.Kind() == metrics.KindUint64 {
			e.gauge(f, float64(v.Uint64()))
		}
	}

	pauses := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&pauses)
	quantiles := make([]quantile, len(pauses.PauseQuantiles))
	for i, most := range pauses.PauseQuantiles {
		quantiles[i] = quantile{float64(i) / float64(len(quantiles)-1), most.Seconds()}
	}
	e.summary(goPausesFamily, quantiles, pauses.PauseTotal.Seconds(), uint64(pauses.NumGC))

	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	e.gauge(goAllocFamily, float64(m.Alloc))
	e.counter(goAllocTotalFamily, float64(m.TotalAlloc))
	e.counter(goMallocsFamily, float64(m.Mallocs))
	e.counter(goFreesFamily, float64(m.Frees))
	e.gauge(goSysFamily, float64(m.Sys))
	e.gauge(goHeapAllocFamily, float64(m.HeapAlloc))
	e.gauge(goHeapSysFamily, float64(m.HeapSys))
	e.gauge(goHeapIdleFamily, float64(m.HeapIdle))
	e.gauge(goHeapInuseFamily, float64(m.HeapInuse))
	e.gauge(goHeapBackFamily, float64(m.HeapReleased))
	e.gauge(goObjectsFamily, float64(m.HeapObjects))
	e.gauge(goStackInuseFamily, float64(m.StackInuse))
	e.gauge(goStackSysFamily, float64(m.StackSys))
	e.gauge(goMSpanFamily, float64(m.MSpanInuse))
	e.gauge(goMSpanSysFamily, float64(m.MSpanSys))
	e.gauge(goMCacheFamily, float64(m.MCacheInuse))
	e.gauge(goMCacheSysFamily, float64(m.MCacheSys))
	e.gauge(goBuckHashFamily, float64(m.BuckHashSys))
	e.gauge(goGCSysFamily, float64(m.GCSys))
	e.gauge(goOtherSysFamily, float64(m.OtherSys))
	e.gauge(goNextGCFamily, float64(m.NextGC))
	e.gauge(goLastGCFamily, float64(m.LastGC)/1e9)
}

// A process is what the system says of this one; what it does not say is less than 0.
type process struct {
	cpu               time.Duration // user and system
	resident, virtual int64         // bytes
	room              float64       // bytes of virtual memory that it may have
	open, most        int64         // descriptors
	start             float64       // seconds since 1970
}

var unknownProcess = process{cpu: -1, resident: -1, virtual: -1, room: -1, open: -1, most: -1, start: -1}

// exposeProcess gives the metrics of the process, as far as the system tells them.
func exposeProcess(e *exposition) {
	p := unknownProcess
	p.read(os.Getpid())
	if p.cpu >= 0 {
		e.counter(processCPUFamily, p.cpu.Seconds())
	}
	for f, v := range map[*family]float64{
		processResidentFamily: float64(p.resident), processVirtualFamily: float64(p.virtual), processRoomFamily: p.room,
		processOpenFamily: float64(p.open), processMaxFamily: float64(p.most), processStartFamily: p.start,
	} {
		if v >= 0 {
			e.gauge(f, v)
		}
	}
}
