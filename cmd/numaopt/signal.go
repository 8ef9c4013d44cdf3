package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signalError is the cause of a context that ended by a signal.
type signalError struct{ sig syscall.Signal }

func (e *signalError) Error() string {
	return fmt.Sprintf("ended by signal %d (%v)", int(e.sig), e.sig)
}

// signalContext is done at the first SIGINT, SIGTERM or SIGHUP that the process
// does not ignore, with a *signalError as its cause; at the second one of the
// same kind the process dies of it. SIGPIPE keeps its default: numaopt | head
// ends quietly.
func signalContext() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // nohup, and jobs in the background of a script
			signal.Notify(ch, sig)
		}
	}
	done := make(chan struct{})
	go func() {
		select {
		case sig := <-ch:
			cancel(&signalError{sig.(syscall.Signal)})
			signal.Stop(ch)
		case <-done:
		}
	}()
	var once sync.Once
	return ctx, func() {
		once.Do(func() { close(done) })
		signal.Stop(ch)
		cancel(nil)
	}
}
