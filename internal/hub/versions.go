package hub

import "github.com/danielgtaylor/huma/v2"

func (h *Hub) versionsAPI(api huma.API) {}
