package hub

import "github.com/danielgtaylor/huma/v2"

func (h *Hub) skillsAPI(api huma.API) {}
