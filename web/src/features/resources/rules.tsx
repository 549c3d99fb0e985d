import { useRef, useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { Button } from "../../shared/ui";
import { useFault } from "./faults";
import { Sortable } from "./sortable";

interface Rule {
  key: number;
  effect: string;
  tools: string;
}

const effects = ["allow", "ask", "deny"] as const;
let last = 0;

/** parse splits a rule into its effect and its pattern. */
function parse(text: string): Rule {
  const [, effect, tools] = /^\s*(allow|ask|deny)\b[\s:]*(.*)$/is.exec(text) ?? [];
  return effect
    ? { key: ++last, effect: effect.toLowerCase(), tools: tools ?? "" }
    : { key: ++last, effect: "", tools: text };
}

const written = (r: Rule) => (r.effect ? `${r.effect} ${r.tools}`.trim() : r.tools);

/** RulesEditor edits an ordered list of tool rules. */
export function RulesEditor({ rules, onChange }: { rules: string[]; onChange: (rules: string[]) => void }) {
  const fault = useFault("spec.policy", true);
  const told = useRef(JSON.stringify(rules));
  const [rows, setRows] = useState(() => rules.map(parse));
  const now = JSON.stringify(rules);
  const shown = now === told.current ? rows : rules.map(parse); // changed elsewhere, for example by Discard
  const put = (next: Rule[]) => {
    const texts = next.filter((r) => r.tools.trim()).map(written);
    told.current = JSON.stringify(texts);
    setRows(next);
    onChange(texts);
  };
  const set = (key: number, change: Partial<Rule>) => put(shown.map((r) => (r.key === key ? { ...r, ...change } : r)));
  return (
    <fieldset class="agents-choice">
      <legend>{msg("agents.rules")}</legend>
      <p class="small muted">{msg("agents.rulesHint")}</p>
      <Sortable
        label={msg("agents.rules")}
        items={shown}
        keyOf={(r) => String(r.key)}
        nameOf={(r) => written(r) || msg("agents.newRule")}
        onOrder={put}
      >
        {(r) => (
          <div class="agents-rule">
            <select
              class="input"
              aria-label={msg("agents.effect")}
              value={r.effect}
              onChange={(e) => set(r.key, { effect: e.currentTarget.value })}
            >
              {!r.effect && <option value="">…</option>}
              {effects.map((e) => (
                <option key={e} value={e}>
                  {msg(`agents.effects.${e}`)}
                </option>
              ))}
            </select>
            <input
              class="input mono"
              aria-label={msg("agents.ruleTools")}
              placeholder="mcp.SERVER.TOOL_*"
              value={r.tools}
              autocomplete="off"
              onInput={(e) => set(r.key, { tools: e.currentTarget.value })}
            />
            <Button
              small
              look="quiet"
              icon="close"
              label={msg("agents.removeRule", { r: written(r) })}
              onClick={() => put(shown.filter((x) => x.key !== r.key))}
            />
          </div>
        )}
      </Sortable>
      {fault && (
        <p class="agents-fault" role="alert">
          {fault}
        </p>
      )}
      <div>
        <Button small icon="plus" onClick={() => put([...shown, { key: ++last, effect: "deny", tools: "" }])}>
          {msg("agents.addRule")}
        </Button>
      </div>
    </fieldset>
  );
}
