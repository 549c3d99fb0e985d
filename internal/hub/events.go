package hub

func (h *Hub) mountSessions() {}
