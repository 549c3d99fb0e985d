import { useLocation } from "preact-iso";
import { useEffect } from "preact/hooks";
import { done, failed } from "../ui";
import { w } from "./signwords";

/** Says what became of a sign-in to a server to whoever comes back from there, once. */
export default function Returned() {
  const { query, path, route } = useLocation();
  useEffect(() => {
    if (!query.signin) return;
    const t = w();
    if (query.signin === "done") done(t.done);
    else failed(new Error(t.back + (t.reasons[query.signin] ?? t.other)));
    const rest = new URLSearchParams(query);
    rest.delete("signin");
    route(path + (rest.size ? `?${rest}` : ""), true);
  }, [query.signin]);
  return null;
}
