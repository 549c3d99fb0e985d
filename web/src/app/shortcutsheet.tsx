import { overlay } from "../features/shortcuts/commands";
import { keyNames, setSingleKeys, shortcutText, singleKeys } from "../features/shortcuts/keys";
import { allShortcuts, type Scope, shortcuts } from "../features/shortcuts/table";
import { msg } from "../shared/i18n/messages";
import { Check, Dialog } from "../shared/ui";
import "./palette.css";

const scopes: Scope[] = ["everywhere", "chat", "input", "request"];

/** ShortcutSheet lists all keyboard shortcuts. */
export default function ShortcutSheet() {
  return (
    <Dialog title={msg("shortcuts.title")} onClose={() => (overlay.value = undefined)}>
      <div class="sheet">
        {scopes.map((scope) => (
          <section key={scope}>
            <h3>{msg(`shortcuts.scope.${scope}`)}</h3>
            <dl>
              {allShortcuts()
                .filter(([, s]) => s.scope === scope)
                .map(([name]) => (
                  <div key={name}>
                    <dt>{shortcutText(name)}</dt>
                    <dd>
                      <Keys name={name} />
                    </dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
      </div>
      <Check
        label={msg("shortcuts.single")}
        hint={msg("shortcuts.singleHint")}
        checked={singleKeys.value}
        onCheck={setSingleKeys}
      />
    </Dialog>
  );
}

function Keys({ name }: { name: keyof typeof shortcuts }) {
  const keys = keyNames(name);
  const twice = "twice" in shortcuts[name];
  return (
    <>
      {(twice ? [...keys, ...keys] : keys).map((key, i) => (
        <kbd key={i}>{key}</kbd>
      ))}
    </>
  );
}
