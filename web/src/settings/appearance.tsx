import { choose, type Theme, theme } from "../shell/theme";
import { type Language, language, speak } from "../words";
import { Part } from "./sections";
import { w } from "./words";

/** How the page looks, and what it speaks. */
export function Appearance() {
  const t = w();
  return (
    <Part title={t.tabs.appearance} lead={t.here2}>
      <Choice<Theme> label={t.theme} name="theme" chosen={theme.value} onChoose={choose} options={[["system", t.themes.system], ["light", t.themes.light], ["dark", t.themes.dark]]} />
      <Choice<Language> label={t.language} name="language" chosen={language.value} onChoose={speak} options={[["en", "English"], ["zh", "简体中文"]]} />
    </Part>
  );
}

function Choice<T extends string>({ label, name, chosen, onChoose, options }: { label: string; name: string; chosen: T; onChoose: (to: T) => void; options: [T, string][] }) {
  return (
    <fieldset class="settings-choices">
      <legend>{label}</legend>
      {options.map(([value, text]) => (
        <label key={value}><input type="radio" name={name} checked={chosen === value} onChange={() => onChoose(value)} />{text}</label>
      ))}
    </fieldset>
  );
}
