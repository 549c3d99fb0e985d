import { useMemo } from "preact/hooks";
import { msg } from "../i18n/messages";
import { lazyModule } from "./lazyload";
import { Scroll } from "./scrollbox";
import { showHiddenCharacters } from "./visibletext";

interface FormulaProps {
  tex: string;
  /** The formula as written, with its marks. */
  source: string;
  display: boolean;
}

const useTypesetter = lazyModule(() => import("./typeset"));

/** Formula shows a formula, or its source if it is wrong, too large or still incomplete. */
export function Formula({ tex, source, display }: FormulaProps) {
  const typesetter = useTypesetter(!!tex);
  const drawn = useMemo(() => typesetter?.typeset(tex, display), [typesetter, tex, display]);
  if (!drawn)
    return display ? (
      <div class="content-tex">{showHiddenCharacters(source)}</div>
    ) : (
      <span>{showHiddenCharacters(source)}</span>
    );
  const box = <span class="content-formula" dir="ltr" ref={(e) => e?.replaceChildren(drawn)} />;
  return display ? (
    <Scroll label={msg("content.formula")} class="content-equation">
      {box}
    </Scroll>
  ) : (
    box
  );
}
