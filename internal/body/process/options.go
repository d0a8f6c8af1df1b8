package process

import "time"

// Options say how much is kept of what bodies write.
type Options struct {
	// LogSize is how long a log file may be, in bytes, until it is rotated.
	// Absent means 10 MiB.
	LogSize int64
	// LogKeep is how many earlier files are kept of each. Absent means 3.
	LogKeep int
	// LogCheck is how often the length is looked at. Absent means 1s.
	LogCheck time.Duration
}

func (o Options) withDefaults() Options {
	if o.LogSize <= 0 {
		o.LogSize = 10 << 20
	}
	if o.LogKeep <= 0 {
		o.LogKeep = 3
	}
	if o.LogCheck <= 0 {
		o.LogCheck = time.Second
	}
	return o
}
