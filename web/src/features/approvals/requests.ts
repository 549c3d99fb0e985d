import { computed, signal } from "@preact/signals";
import { api, got, Refusal, type Schema } from "../../shared/api/client";

export type ApprovalRequest = Schema["ApprovalRequest"];

/** The pending requests of the user, oldest first. */
export const pendingRequests = signal<ApprovalRequest[]>([]);

/** Whether the requests were loaded at least once. */
export const known = signal(false);

/** The conversation on the screen. It shows its own requests. */
export const shownSession = signal<string>();

/** The number of requests that need the user. */
export const waiting = computed(() => pendingRequests.value.filter((a) => a.kind !== "action").length);

/** isPending reports whether a request waits for the user. */
export const isPending = (ask: ApprovalRequest) =>
  ask.kind !== "action" && pendingRequests.value.some((a) => a.id === ask.id);

/** refresh loads the requests again. */
export async function refresh() {
  const { items } = await got(api.GET("/api/v1/asks"));
  pendingRequests.value = items;
  known.value = true;
}

/** opened adds a new request to the list. */
export function opened(ask: ApprovalRequest) {
  if (!pendingRequests.value.some((a) => a.id === ask.id)) pendingRequests.value = [...pendingRequests.value, ask];
}

/** removeRequest removes a resolved request from the list. */
export function removeRequest(id: string) {
  pendingRequests.value = pendingRequests.value.filter((a) => a.id !== id);
}

/** answer sends an answer. It returns false if another answer came first. */
export async function answer(ask: ApprovalRequest, body: Schema["Answer"]): Promise<boolean> {
  try {
    await got(api.POST("/api/v1/asks/{ask}", { params: { path: { ask: ask.id } }, body }));
    return true;
  } catch (error) {
    if (error instanceof Refusal && (error.problem.status === 409 || error.problem.status === 404)) return false;
    throw error;
  } finally {
    removeRequest(ask.id);
    void refresh().catch(() => {});
  }
}

/** keepFresh reloads the requests while the page is visible. It returns a function that stops it. */
export function keepFresh(every = 10_000): () => void {
  const look = () => document.visibilityState === "visible" && void refresh().catch(() => {});
  look();
  const timer = setInterval(look, every);
  document.addEventListener("visibilitychange", look);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", look);
  };
}
