import { findMsg } from "../i18n/messages";

/** A finding of a scan. */
interface Found {
  rule: string;
  message: string;
  advice: string;
}

/** translateFinding returns a finding in the language of the page, or as it is if its rule has no translation. */
export const translateFinding = <T extends Found>(f: T): T => ({
  ...f,
  message: findMsg("finding", `${f.rule}.message`) ?? f.message,
  advice: f.advice && (findMsg("finding", `${f.rule}.advice`) ?? f.advice),
});
