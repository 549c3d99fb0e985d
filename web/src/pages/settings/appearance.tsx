import { chooseLanguage, languageName } from "../../shared/i18n/choice";
import { language } from "../../shared/i18n/language";
import { languages, msg } from "../../shared/i18n/messages";
import { failed } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";
import { choose, type Theme, theme } from "../../shared/ui/theme";

/** Appearance selects the theme and the language. */
export function Appearance() {
  return (
    <Part title={msg("settings.tabs.appearance")} lead={msg("settings.here2")}>
      <Choice<Theme>
        label={msg("settings.theme")}
        name="theme"
        chosen={theme.value}
        onChoose={choose}
        options={[
          ["system", msg("settings.themes.system")],
          ["light", msg("settings.themes.light")],
          ["dark", msg("settings.themes.dark")],
        ]}
      />
      <Choice<string>
        label={msg("settings.language")}
        name="language"
        chosen={language.value}
        onChoose={(code) => void chooseLanguage(code).catch(failed)}
        options={languages.map((code) => [code, languageName(code)])}
      />
    </Part>
  );
}

function Choice<T extends string>({
  label,
  name,
  chosen,
  onChoose,
  options,
}: {
  label: string;
  name: string;
  chosen: T;
  onChoose: (to: T) => void;
  options: [T, string][];
}) {
  return (
    <fieldset class="settings-choices">
      <legend>{label}</legend>
      {options.map(([value, text]) => (
        <label key={value}>
          <input type="radio" name={name} checked={chosen === value} onChange={() => onChoose(value)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}
