package hub

func (h *Hub) mountSkills() {}
