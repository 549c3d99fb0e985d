import { decoded } from "../api/address";
import { useLocation } from "preact-iso";
import { ways } from "../api/me";
import { useTitle } from "../shell/page";
import { Button } from "../ui";
import { language, speak } from "../words";
import { Setup } from "./setup";
import { SignIn } from "./signin";
import { w } from "./words";
import "./account.css";

/** What is shown to who is not signed in: the sign-in, or, by its link, the first run. */
export default function Door() {
  const { path } = useLocation();
  const link = /^\/setup\/(.+)$/.exec(path)?.[1];
  const t = w();
  const first = link && ways.value?.setup;
  useTitle(first ? t.setup : t.title);
  return (
    <main class="door account-door">
      <div class="card stack loose">
        <h1 class="row"><img src="/icon.svg" width="32" height="32" alt="" /> {first ? t.setup : t.title}</h1>
        {first ? <Setup link={decoded(link)} /> : <SignIn stale={!!link} />}
      </div>
      <div class="row" role="group" aria-label={t.language}>
        <Button small look="quiet" aria-pressed={language.value === "en"} onClick={() => speak("en")}>English</Button>
        <Button small look="quiet" aria-pressed={language.value === "zh"} onClick={() => speak("zh")}>简体中文</Button>
      </div>
    </main>
  );
}
