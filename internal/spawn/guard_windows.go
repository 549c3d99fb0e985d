package spawn

// guard is not needed where the system ends a job with us.
type guard struct{}

func newGuard(chan<- func()) *guard { return &guard{} }

func (*guard) add(int) {}

func (*guard) remove(int) {}

func (*guard) close() {}
