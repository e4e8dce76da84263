package recent

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// A model is a Table as simple as can be.
type model struct {
	most  int
	order []uint16 // the one used longest ago first
	value map[uint16]int
}

func (m *model) use(k uint16) {
	if i := slices.Index(m.order, k); i >= 0 {
		m.order = append(slices.Delete(m.order, i, i+1), k)
	}
}

func (m *model) put(k uint16, v int) {
	if _, ok := m.value[k]; ok {
		m.use(k)
	} else {
		if len(m.order) == m.most {
			delete(m.value, m.order[0])
			m.order = m.order[1:]
		}
		m.order = append(m.order, k)
	}
	m.value[k] = v
}

// agree compares all of a table with its model.
func agree(t *testing.T, table *Table[uint16, int], m *model) {
	t.Helper()
	var order []uint16
	for k, v := range table.All() {
		order = append(order, k)
		if *v != m.value[k] {
			t.Fatalf("%d is %d and not %d", k, *v, m.value[k])
		}
	}
	if !slices.Equal(order, m.order) || table.Len() != len(m.order) {
		t.Fatalf("the order is %v and not %v, of %d", order, m.order, table.Len())
	}
}

// play does what bytes say to a table and its model: three for each step.
func play(t *testing.T, most int, steps []byte) {
	t.Helper()
	table, m := NewTable[uint16, int](most), &model{most: most, value: map[uint16]int{}}
	for n := 0; len(steps) >= 3; n++ {
		what, k := steps[0], binary.BigEndian.Uint16(steps[1:])
		if what < 128 {
			k &= 31 // few, so that they meet
		}
		steps = steps[3:]
		switch want, there := m.value[k]; what % 4 {
		case 0, 1:
			table.Put(k, n)
			m.put(k, n)
		case 2:
			if got := table.Use(k); (got != nil) != there || there && *got != want {
				t.Fatalf("step %d: %d is %v and not %d, %v", n, k, got, want, there)
			}
			m.use(k)
		case 3:
			if got := table.Look(k); (got != nil) != there || there && *got != want {
				t.Fatalf("step %d: %d is %v and not %d, %v", n, k, got, want, there)
			}
		}
		if n%16 == 0 {
			agree(t, table, m)
		}
	}
	agree(t, table, m)
}

func TestATableIsWhatItsModelIs(t *testing.T) {
	for _, most := range []int{1, 2, 3, 7, 20, 64, 1000} {
		for seed := range uint64(30) {
			random := rand.New(rand.NewPCG(seed, uint64(most)))
			steps := make([]byte, 9000)
			for i := range steps {
				steps[i] = byte(random.Uint32())
			}
			play(t, most, steps)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add(uint8(2), []byte("\x00\x00\x01\x00\x00\x02\x02\x00\x01\x00\x00\x03\x03\x00\x02"))
	f.Fuzz(func(t *testing.T, most uint8, steps []byte) { play(t, max(1, int(most)), steps) })
}

// Keys come and go, and what a table takes stays: 72 bytes for each here.
func TestATableTakesNoMoreThanItsEntries(t *testing.T) {
	const most = 1 << 16
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	table := NewTable[[16]byte, int64](most)
	for i := range uint64(8 * most) {
		var k [16]byte
		binary.BigEndian.PutUint64(k[:], i)
		table.Put(k, int64(i))
	}
	if took := used() - before; table.Len() != most || took > 72*most {
		t.Errorf("%d entries take %d bytes", table.Len(), took)
	}
	runtime.KeepAlive(table)
}

func BenchmarkPut(b *testing.B) {
	b.ReportAllocs()
	table := NewTable[[16]byte, int64](1 << 16)
	var k [16]byte
	for i := uint64(0); b.Loop(); i++ {
		binary.BigEndian.PutUint64(k[:], i)
		table.Put(k, 1)
	}
}
