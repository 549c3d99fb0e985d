package sessionapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// newFolder names a folder.
type newFolder struct {
	Name string `json:"name" minLength:"1" maxLength:"60" doc:"Unique among your folders"`
}

// FolderPath is the path parameter for a folder.
type FolderPath struct {
	Folder string `path:"folder" maxLength:"64" doc:"The id of a folder"`
}

func (h *Handlers) foldersAPI() {
	api.Add(h.Server, api.Operation("list-folders", "GET", "/folders", "List your folders of conversations, by name"), h.listFolders)
	api.Add(h.Server, api.WithCreated(api.Operation("create-folder", "POST", "/folders", "Create a folder for conversations; a user has at most 100")), h.createFolder)
	api.Add(h.Server, api.Operation("rename-folder", "PATCH", "/folders/{folder}", "Rename a folder"), h.renameFolder)
	api.Add(h.Server, api.Operation("delete-folder", "DELETE", "/folders/{folder}", "Delete a folder; its conversations remain"), h.deleteFolder)
}

func (h *Handlers) listFolders(ctx context.Context, _ *api.NoBody) (*api.Body[api.ListBody[chat.ConversationFolder]], error) {
	found, err := h.Chat.Folders(ctx, account.FromContext(ctx))
	return api.ListOf(found, "", err)
}

func (h *Handlers) createFolder(ctx context.Context, in *struct{ Body newFolder }) (*api.CreatedBody[chat.ConversationFolder], error) {
	made, err := h.Chat.CreateFolder(ctx, account.FromContext(ctx), in.Body.Name)
	return api.CreatedAt(made.ID, "folders", made, err)
}

func (h *Handlers) renameFolder(ctx context.Context, in *struct {
	FolderPath
	Body newFolder
}) (*api.NoBody, error) {
	return nil, h.Chat.RenameFolder(ctx, account.FromContext(ctx), in.Folder, in.Body.Name)
}

func (h *Handlers) deleteFolder(ctx context.Context, in *FolderPath) (*api.NoBody, error) {
	return nil, h.Chat.DeleteFolder(ctx, account.FromContext(ctx), in.Folder)
}
