package health

import (
	"fmt"
	"testing"
	"time"
)

func BenchmarkAcquireSettle(b *testing.B) {
	board := NewBoard()
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		l, _, ok := board.Acquire(k, now, false)
		if !ok {
			b.Fatal("refused")
		}
		l.Released(now)
		l.Settle(OK, now, Strike{})
	}
}

func BenchmarkAcquireSettleParallel(b *testing.B) {
	board := NewBoard()
	keys := make([]Key, 16)
	for i := range keys {
		keys[i] = Key(fmt.Sprintf("u:%016x", i))
	}
	now := time.Now()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			l, _, ok := board.Acquire(keys[i%len(keys)], now, false)
			if !ok {
				b.Error("refused")
				return
			}
			l.Released(now)
			l.Settle(OK, now, Strike{})
		}
	})
}

func BenchmarkRefused(b *testing.B) {
	board := NewBoard()
	now := time.Now()
	board.Freeze(k, Freeze{Length: time.Hour}, now)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := board.Acquire(k, now, false); ok {
			b.Fatal("granted")
		}
	}
}

func BenchmarkStanding(b *testing.B) {
	board := NewBoard()
	now := time.Now()
	board.Freeze(k, Freeze{Length: time.Hour}, now)
	b.ReportAllocs()
	for b.Loop() {
		board.Standing(k, now)
		board.InFlight(k)
	}
}
