import { useLocation } from "preact-iso";
import { ways } from "../../shared/api/me";
import { decoded } from "../../shared/api/route";
import { chooseLanguage, languageName } from "../../shared/i18n/choice";
import { language } from "../../shared/i18n/language";
import { languages, msg } from "../../shared/i18n/messages";
import { Button, failed, Logo } from "../../shared/ui";
import { useTitle } from "../../shared/ui/page";
import { Setup } from "./setup";
import { SignIn } from "./signin";
import "../../features/users/users.css";

/** SignInPage shows the sign-in, or the first run if opened by its link. */
export default function SignInPage() {
  const { path } = useLocation();
  const link = /^\/setup\/(.+)$/.exec(path)?.[1];

  const first = link && ways.value?.setup;
  useTitle(first ? msg("account.setup") : msg("account.title"));
  return (
    <main class="door account-door">
      <div class="card stack loose">
        <h1 class="row">
          <Logo size={32} /> {first ? msg("account.setup") : msg("account.title")}
        </h1>
        {first ? <Setup link={decoded(link)} /> : <SignIn stale={!!link} />}
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
    </main>
  );
}
