package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// faultRows are understudy when all is well, when every tenth request fails over, and
// when the first candidate is frozen by the request that was sent to see it answer.
func faultRows() []contender {
	return []contender{
		reference(bare, "bare"),
		understudy("understudy, all well", alias, twoCandidates("", failOver)),
		understudy("  10 % fail over", alias, twoCandidates("/fail/503/10", failOver)),
		understudy("  first one frozen", alias, twoCandidates("/fail/429/1", freezeLong)),
		understudy("  all fail over", alias, twoCandidates("/fail/503/1", failOver)),
	}
}

// faultColumns are those that a fault can change.
func faultColumns() (some []column) {
	for _, c := range columns() {
		switch c.key {
		case "request", "delta", "delay", "stream", "large", "peak":
			c.goal, c.stretch = 0, 0
			some = append(some, c)
		}
	}
	return some
}

// faults prints the table's figures under faults, and what a failover and a frozen
// candidate cost.
func (b *bench) faults(ctx context.Context) error {
	rows, err := b.measureAll(ctx, faultRows(), steps())
	if err != nil {
		return err
	}
	for _, r := range rows {
		r.Judged = false // the goals are the table's
	}
	fmt.Print(about(b))
	render(os.Stdout, rows, faultColumns(), b.smoke)
	well := rows[1].Medians
	fmt.Printf("\na request more, by CPU: first one frozen %+.1f µs; each failover %+.1f µs (of the tenth that fails over), %+.1f µs (where all do), with the failed attempt in it\n",
		rows[3].Medians["request"]-well["request"], 10*(rows[2].Medians["request"]-well["request"]), rows[4].Medians["request"]-well["request"])
	fmt.Printf("a request later, by the median: first one frozen %+.0f µs; where all fail over %+.0f µs, with the failed attempt in it\n",
		rows[3].Medians["delay"]-well["delay"], rows[4].Medians["delay"]-well["delay"])
	if err := b.save(rows); err != nil {
		return err
	}
	return errors.Join(complete(rows, faultColumns(), false))
}
