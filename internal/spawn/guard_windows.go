package spawn

// guard does nothing: the system ends the job with this program.
type guard struct{}

func newGuard(chan<- func()) *guard { return &guard{} }

func (*guard) add(int) {}

func (*guard) remove(int) {}

func (*guard) close() {}
