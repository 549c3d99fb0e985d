import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { chooseLanguage, languageName } from "../../shared/i18n/choice";
import { language } from "../../shared/i18n/language";
import { languages, msg } from "../../shared/i18n/messages";
import { Button, failed, Logo } from "../../shared/ui";
import { helpFor } from "../../shared/ui/helplinks";
import { useTitle } from "../../shared/ui/page";
import "../../features/users/users.css";

/** Door is the frame of pages outside of the app, with a choice of the language. */
export function Door({ title, children }: { title: string; children: ComponentChildren }) {
  const { path } = useLocation();
  useTitle(title);
  return (
    <main class="door account-door">
      <div class="card stack loose">
        <h1 class="row" tabIndex={-1}>
          <Logo size={32} /> {title}
        </h1>
        {children}
      </div>
      <div class="row" role="group" aria-label={msg("account.language")}>
        {languages.map((code) => (
          <Button
            key={code}
            small
            look="quiet"
            aria-pressed={language.value === code}
            onClick={() => void chooseLanguage(code).catch(failed)}
          >
            {languageName(code)}
          </Button>
        ))}
      </div>
      <a class="small" href={helpFor(path.startsWith("/invite/") ? path : "/account")}>
        {msg("shell.help")}
      </a>
    </main>
  );
}
