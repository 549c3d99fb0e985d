import type { Address } from "../../features/skills/skilladdress";
import { msg } from "../../shared/i18n/messages";
import { Button, Empty } from "../../shared/ui";
import { noFilters } from "./filter";

/** None explains an empty list and offers the next action. */
export function None({ at, empty }: { at: Address; empty: boolean }) {
  if (!empty) {
    const clear = () => at.go({ ...noFilters, q: "" });
    const wider = at.get("in") ? <Button onClick={() => at.go({ in: "" })}>{msg("library.everywhere")}</Button> : null;
    return (
      <Empty
        title={at.get("q") ? msg("library.noneFor", { q: at.get("q") }) : msg("library.noneLike")}
        actions={
          <>
            <Button onClick={clear}>{msg("library.clear")}</Button>
            {wider}
          </>
        }
      >
        {msg("library.noneText")}
      </Empty>
    );
  }
  const actions = (
    <>
      <a class="button" href="/library/add">
        {msg("library.upload")}
      </a>
      <a class="button" href="/library/add?tab=import">
        {msg("library.import")}
      </a>
      <a class="button" href="/compose">
        {msg("library.compose")}
      </a>
    </>
  );
  return (
    <Empty title={at.get("in") ? msg("library.noneHere") : msg("library.noneYet")} actions={actions}>
      {msg("library.noneYetText")}
    </Empty>
  );
}
