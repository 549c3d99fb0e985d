package hub

func (h *Hub) mountMCP() {}
