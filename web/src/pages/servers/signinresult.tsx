import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import { findMsg, msg } from "../../shared/i18n/messages";
import { done, failed } from "../../shared/ui";

/** Returned shows the result of a sign-in to a server, once. */
export default function Returned() {
  const { query, path, route } = useLocation();
  useEffect(() => {
    if (!query.signin) return;

    if (query.signin === "done") done(msg("serverSignIn.done"));
    else
      failed(
        new Error(
          msg("serverSignIn.back") + (findMsg("serverSignIn.reasons", query.signin) ?? msg("serverSignIn.other")),
        ),
      );
    const rest = new URLSearchParams(query);
    rest.delete("signin");
    route(path + (rest.size ? `?${rest}` : ""), true);
  }, [query.signin]);
  return null;
}
