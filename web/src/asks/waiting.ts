import { computed, signal } from "@preact/signals";
import { api, got, Refusal, type Schema } from "../api/client";

export type Ask = Schema["AskAsk"];

/** The questions that wait for whoever is signed in, those asked first first. */
export const asks = signal<Ask[]>([]);

/** Whether they were ever got. */
export const known = signal(false);

/** The conversation that is on the screen; its questions are in it. */
export const shownSession = signal<string>();

/** How many questions wait for a person. */
export const waiting = computed(() => asks.value.filter((a) => a.kind !== "action").length);

/** Get them anew. */
export async function refresh() {
  const { items } = await got(api.GET("/api/v1/asks"));
  asks.value = items;
  known.value = true;
}

/** Note a question that was told of. */
export function opened(ask: Ask) {
  if (!asks.value.some((a) => a.id === ask.id)) asks.value = [...asks.value, ask];
}

/** Note that a question is settled. */
export function settled(id: string) {
  asks.value = asks.value.filter((a) => a.id !== id);
}

/** Answer a question; false where another answer was first. */
export async function answer(ask: Ask, body: Schema["Answer"]): Promise<boolean> {
  try {
    await got(api.POST("/api/v1/asks/{ask}", { params: { path: { ask: ask.id } }, body }));
    return true;
  } catch (error) {
    if (error instanceof Refusal && (error.problem.status === 409 || error.problem.status === 404)) return false;
    throw error;
  } finally {
    settled(ask.id);
    void refresh().catch(() => {});
  }
}

/** Keep them fresh while the page is looked at; returns what ends that. */
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
