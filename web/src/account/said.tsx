import { Refusal } from "../api/client";
import { Problem } from "../ui";
import { w } from "./words";

/** Why somebody is not let in: in the words of the page for what is usual, else in those of the hub. */
export function Said({ error }: { error: unknown }) {
  const words = error instanceof Refusal ? w().reasons[error.problem.code] : undefined;
  return words ? <div class="note bad" role="alert">{words}</div> : <Problem error={error} />;
}
