import { useLocation } from "preact-iso";
import { away } from "../api/client";
import { Button, useConfirm } from "../ui";
import { ago } from "../words";
import { forget, keep, newKey } from "./kept";
import { w } from "./words";
import type { Work } from "./work";

/** What is to be known before one goes on: that this is earlier work, that others saved meanwhile, that one may not save. */
export function Notes({ work, again }: { work: Work; again?: () => Promise<void> }) {
  const { of, base, kept: earlier } = work;
  const earlierWork = of && earlier?.touched && work.changed;
  const { route } = useLocation();
  const copy = () => {
    const key = newKey();
    keep({ key, name: work.name, at: new Date().toISOString(), files: work.files, touched: true });
    work.settle();
    forget(work.key);
    route(`/compose?draft=${key}`);
  };
  return (
    <>
      {earlierWork && <Earlier work={work} at={earlier.at} again={again} />}
      {of && base !== undefined && of.number !== base && <div class="note warn" role="status">{w().moved(of.number, base)}</div>}
      {of && !of.can.includes("skill.change") && (
        <div class="note warn" role="status">{w().mayNot}<div><Button small icon="copy" onClick={copy}>{w().saveCopy}</Button></div></div>
      )}
      {!work.safe && <div class="note warn" role="status">{w().notKept}</div>}
      {away.value && <div class="note warn" role="status">{w().awayText}</div>}
    </>
  );
}

function Earlier({ work, at, again }: { work: Work; at: string; again?: () => Promise<void> }) {
  const confirm = useConfirm();
  const back = async () => {
    forget(work.key);
    work.change(() => [...work.saved]);
    await again?.();
  };
  const ask = () => confirm.ask({ title: w().throwTitle, children: <p>{w().throwText(work.name)}</p>, yes: w().throwAway, danger: true, act: back });
  return (
    <div class="note compose-earlier" role="status">
      <span class="grow">{w().restored(ago(at))}</span>
      <Button small onClick={ask}>{w().fromSaved}</Button>
      {confirm.open}
    </div>
  );
}
