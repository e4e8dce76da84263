module understudy/bench

go 1.26.0
