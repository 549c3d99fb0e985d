import { computed, effect, signal } from "@preact/signals";
import { language } from "../words";

/** What the hub says is wrong with a SKILL.md. */
export interface Diagnosed {
  code: string;
  message: string;
  fix?: string;
}

/** What the hub says of a request that it refuses. */
export interface Refused {
  code: string;
  detail: string;
  next?: string;
}

/** The Chinese texts, once they are wanted and there. */
const chinese = signal<typeof import("./zh")>();

function want() {
  import("./zh").then((m) => (chinese.value = m), () => undefined); // until then it is English
}

/** Fetches the texts of the language when the page has nothing else to do. */
effect(() => {
  if (language.value === "zh" && !chinese.peek()) ("requestIdleCallback" in window ? requestIdleCallback : setTimeout)(want);
});

/** Whether what the hub said is told in another language than it was said in. */
export const retold = computed(() => language.value === "zh" && !!chinese.value);

/** What the hub said, in the language of the page; where that has no text for it, as it was said. */
export const toldDiagnostic = <T extends Diagnosed>(d: T): T => (retold.value ? chinese.value!.diagnostic(d) : d);

export const toldProblem = <T extends Refused>(p: T): T => (retold.value ? chinese.value!.problem(p) : p);
