package hub

import "github.com/danielgtaylor/huma/v2"

func (h *Hub) reviewsAPI(api huma.API) {}
