package spawn

// guard does nothing, because Windows kills the job when this program exits.
type guard struct{}

func newGuard(chan<- func()) *guard { return &guard{} }

func (*guard) add(int) {}

func (*guard) remove(int) {}

func (*guard) close() {}
