import { useMemo } from "preact/hooks";
import { msg } from "../i18n/messages";
import { heavy } from "./lazyload";
import { Scroll } from "./scrollbox";
import { shown } from "./visibletext";

interface FormulaProps {
  tex: string;
  /** The formula as written, with its marks. */
  source: string;
  display: boolean;
}

const useTypesetter = heavy(() => import("./typeset"));

/** Formula shows a formula, or its source if it is wrong, too large or still incomplete. */
export function Formula({ tex, source, display }: FormulaProps) {
  const typesetter = useTypesetter(!!tex);
  const drawn = useMemo(() => typesetter?.typeset(tex, display), [typesetter, tex, display]);
  if (!drawn) return display ? <div class="content-tex">{shown(source)}</div> : <span>{shown(source)}</span>;
  const box = <span class="content-formula" dir="ltr" ref={(e) => e?.replaceChildren(drawn)} />;
  return display ? (
    <Scroll label={msg("content.formula")} class="content-equation">
      {box}
    </Scroll>
  ) : (
    box
  );
}
