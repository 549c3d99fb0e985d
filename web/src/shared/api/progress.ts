import { refusal, Unreachable, type Schema } from "./client";

type Answer = { data?: ReadableStream<Uint8Array<ArrayBuffer>> | null; error?: unknown; response: Response };

/** The options of a request whose response reports progress. */
export const asStream = { headers: { Accept: "text/event-stream" }, parseAs: "stream" } as const;

/**
 * gotWithProgress returns the result of a request with the options `asStream`, or throws a Refusal.
 * Until then it passes on how far the hub is.
 */
export async function gotWithProgress<T>(
  answer: Promise<Answer>,
  progress: (p: Schema["Progress"]) => void,
): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok || !data) throw refusal(response.status, error);
  if (!response.headers.get("Content-Type")?.startsWith("text/event-stream"))
    return (await new Response(data).json()) as T;
  const reader = data.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read().catch(() => ({ value: "", done: true }));
    if (done) throw new Unreachable(); // the response was lost
    const events = (rest + value).split("\n\n");
    rest = events.pop()!;
    for (const event of events) {
      const [, name, text] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
      if (!text) continue; // a comment, which keeps the connection open
      const content: unknown = JSON.parse(text);
      if (name === "result") return content as T;
      if (name === "problem") throw refusal(response.status, content);
      progress(content as Schema["Progress"]);
    }
  }
}
