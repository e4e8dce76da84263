// Package recent remembers values for the keys that were used last, in little memory:
// some sixty thousand sessions and answers are remembered all the time, and what is
// alive is also what the garbage collector goes through.
package recent

import (
	"hash/maphash"
	"iter"
)

// A Table holds the values of at most so many keys; the one that was used longest ago
// goes first. Entries lie side by side and name each other by their places, so that one
// costs its key, its value and about 20 bytes, and no object of its own. A Table may not
// be used by several goroutines at once.
type Table[K comparable, V any] struct {
	most    int
	seed    maphash.Seed // keys that clients choose cannot be made to collide
	entries []entry[K, V]
	// slots has the places of entries, each at its key's hash or, where that is taken,
	// at the next slot that was free (linear probing). Its length is a power of two, and
	// at least half of it is free.
	slots          []place
	newest, oldest place
}

// A place is an entry's index and one; 0 is none.
type place uint32

type entry[K comparable, V any] struct {
	key          K
	value        V
	newer, older place
}

// leastSlots is how many slots a table begins with.
const leastSlots = 16

// NewTable holds at most so many entries, at least one.
func NewTable[K comparable, V any](most int) *Table[K, V] {
	return &Table[K, V]{most: max(most, 1), seed: maphash.MakeSeed()}
}

// Len is how many keys are remembered.
func (t *Table[K, V]) Len() int { return len(t.entries) }

// Look gives the value of a key, nil where there is none, and does not count as its
// use. The value may be changed there until the next Put.
func (t *Table[K, V]) Look(k K) *V {
	if p := t.find(k); p != 0 {
		return &t.at(p).value
	}
	return nil
}

// Use is Look, and makes the key the last that was used.
func (t *Table[K, V]) Use(k K) *V {
	p := t.find(k)
	if p == 0 {
		return nil
	}
	t.unlink(p)
	t.link(p)
	return &t.at(p).value
}

// Put remembers a value, in place of the one before, and makes the key the last that
// was used.
func (t *Table[K, V]) Put(k K, v V) {
	if old := t.Use(k); old != nil {
		*old = v
		return
	}
	var p place
	if len(t.entries) < t.most {
		t.entries = append(t.entries, entry[K, V]{})
		p = place(len(t.entries))
		if 2*len(t.entries) > len(t.slots) {
			t.grow()
		}
	} else {
		p = t.oldest
		t.vacate(p)
		t.unlink(p)
	}
	e := t.at(p)
	e.key, e.value = k, v
	t.occupy(p)
	t.link(p)
}

// All gives every key with its value, the one that was used longest ago first. The table
// may not be changed meanwhile.
func (t *Table[K, V]) All() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for p := t.oldest; p != 0; {
			e := t.at(p)
			if !yield(e.key, &e.value) {
				return
			}
			p = e.newer
		}
	}
}

func (t *Table[K, V]) at(p place) *entry[K, V] { return &t.entries[p-1] }

// home is the slot that a key belongs into.
func (t *Table[K, V]) home(k K) int {
	return int(maphash.Comparable(t.seed, k) & uint64(len(t.slots)-1))
}

// next is the slot behind one.
func (t *Table[K, V]) next(slot int) int { return (slot + 1) & (len(t.slots) - 1) }

func (t *Table[K, V]) find(k K) place {
	if len(t.slots) == 0 {
		return 0
	}
	for slot := t.home(k); ; slot = t.next(slot) {
		if p := t.slots[slot]; p == 0 || t.at(p).key == k {
			return p
		}
	}
}

// occupy puts an entry into a slot.
func (t *Table[K, V]) occupy(p place) {
	slot := t.home(t.at(p).key)
	for t.slots[slot] != 0 {
		slot = t.next(slot)
	}
	t.slots[slot] = p
}

// vacate takes an entry out of its slot. Those behind it move up as far as that brings
// them nearer to where they belong, so that no search ends before it has seen them.
func (t *Table[K, V]) vacate(p place) {
	hole := t.home(t.at(p).key)
	for t.slots[hole] != p {
		hole = t.next(hole)
	}
	mask := len(t.slots) - 1
	for slot := t.next(hole); t.slots[slot] != 0; slot = t.next(slot) {
		home := t.home(t.at(t.slots[slot]).key)
		if (slot-home)&mask >= (slot-hole)&mask {
			t.slots[hole], hole = t.slots[slot], slot
		}
	}
	t.slots[hole] = 0
}

// grow doubles the slots. The last entry is not in one yet.
func (t *Table[K, V]) grow() {
	t.slots = make([]place, max(leastSlots, 2*len(t.slots)))
	for p := place(1); p < place(len(t.entries)); p++ {
		t.occupy(p)
	}
}

// link makes an entry that is in no order the newest.
func (t *Table[K, V]) link(p place) {
	e := t.at(p)
	e.older, e.newer = t.newest, 0
	if t.newest != 0 {
		t.at(t.newest).newer = p
	} else {
		t.oldest = p
	}
	t.newest = p
}

// unlink takes an entry out of the order.
func (t *Table[K, V]) unlink(p place) {
	e := t.at(p)
	if e.newer != 0 {
		t.at(e.newer).older = e.older
	} else {
		t.newest = e.older
	}
	if e.older != 0 {
		t.at(e.older).newer = e.newer
	} else {
		t.oldest = e.newer
	}
}
