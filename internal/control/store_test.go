package control

import "testing"

func TestStoreText(t *testing.T) {
	for _, c := range []struct {
		status StoreStatus
		want   string
	}{
		{StoreStatus{}, ""},
		{StoreStatus{State: StoreShared, Instances: []string{"a"}}, "\nstore: shared with 0 other instances"},
		{StoreStatus{State: StoreShared, Instances: []string{"a", "b"}}, "\nstore: shared with 1 other instance"},
		{StoreStatus{State: StoreAway, Instances: []string{"a"}}, "\nstore: not reached yet"},
		{StoreStatus{State: StoreAway, Problem: "refused"}, "\nstore: away, so this instance goes by what it knows: refused"},
	} {
		if got := storeText(&c.status); got != c.want {
			t.Errorf("%+v: %q, want %q", c.status, got, c.want)
		}
	}
	f := Freeze{By: "person", From: "web-1"}
	if f.who() != "person at web-1" {
		t.Errorf("frozen by %q", f.who())
	}
}
