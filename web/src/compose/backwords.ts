import { words } from "../words";

// Apart from the other words, so that the chat does not fetch all of them.
export const w = words({ back: "Back to the draft" }, { back: "回到草稿" });
