import { Button, Empty } from "../ui";
import type { Address } from "./address";
import { w } from "./words";

/** Where no skill is listed: says why, and what to do. */
export function None({ at, empty }: { at: Address; empty: boolean }) {
  const t = w();
  if (!empty) {
    const clear = () => at.go({ q: "", code: "", review: "", origin: "", tag: "", hidden: "", unused: "" });
    const wider = at.get("in") ? <Button onClick={() => at.go({ in: "" })}>{t.everywhere}</Button> : null;
    return <Empty title={at.get("q") ? t.noneFor(at.get("q")) : t.noneLike} actions={<><Button onClick={clear}>{t.clear}</Button>{wider}</>}>{t.noneText}</Empty>;
  }
  const actions = (
    <>
      <a class="button" href="/library/add">{t.upload}</a>
      <a class="button" href="/library/add?tab=import">{t.import}</a>
      <a class="button" href="/compose">{t.compose}</a>
    </>
  );
  return <Empty title={at.get("in") ? t.noneHere : t.noneYet} actions={actions}>{t.noneYetText}</Empty>;
}
