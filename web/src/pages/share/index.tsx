import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import { SharedView } from "../../features/sharing/sharedview";
import { userName, useUserNames } from "../../features/users/users";
import { api, got, Refusal, type Schema, useLoad } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { decoded } from "../../shared/api/route";
import { formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Empty, Problem, Waiting } from "../../shared/ui";
import { helpFor } from "../../shared/ui/helplinks";
import { Page } from "../../shared/ui/page";

interface Props {
  /** Called if the user must sign in first. */
  onRefused?: () => void;
}

/** SharedPage shows a shared conversation. Without a sign-in, no menu has a help link, so the page has one. */
export default function SharedPage(props: Props) {
  const { path } = useLocation();
  return (
    <>
      <Shared {...props} />
      {!me.value && (
        <p class="small shared-help">
          <a href={helpFor(path)}>{msg("shell.help")}</a>
        </p>
      )}
    </>
  );
}

function Shared({ onRefused }: Props) {
  const { path } = useLocation();
  const link = decoded(path.split("/")[2] ?? "");
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/shared/{link}", { params: { path: { link } }, signal })),
    [link],
  );
  const status = load.error instanceof Refusal ? load.error.problem.status : 0;
  useEffect(() => {
    if (status === 401) onRefused?.();
  }, [status]);
  const expires = load.data?.share.expires;
  useEffect(() => {
    // A page that stays open does not show a share longer than it lasts.
    const again = () => document.visibilityState === "visible" && void load.again();
    document.addEventListener("visibilitychange", again);
    window.addEventListener("focus", again);
    const left = expires ? Date.parse(expires) - Date.now() : Infinity;
    const timer = left < 2 ** 31 ? setTimeout(() => void load.again(), Math.max(left, 0) + 1000) : undefined;
    return () => {
      document.removeEventListener("visibilitychange", again);
      window.removeEventListener("focus", again);
      clearTimeout(timer);
    };
  }, [load.again, expires]);
  if (status === 404)
    return (
      <Page title={msg("share.gone")}>
        <Empty title={msg("share.goneTitle")}>{msg("share.goneText")}</Empty>
      </Page>
    );
  const { code } = load.error instanceof Refusal ? load.error.problem : {};
  if (code === "sharing_disabled")
    return (
      <Page title={msg("share.gone")}>
        <Empty title={msg("share.off")}>{msg("share.offText")}</Empty>
      </Page>
    );
  if (load.error && status !== 401 && !(load.data && status === 0))
    return (
      <Page title={msg("share.shared")}>
        <Problem error={load.error} again={() => void load.again()} />
      </Page>
    );
  if (!load.data || status === 401) return <Waiting />;
  const { share, content } = load.data;
  const fileAddress = (ref: string) => `/api/v1/shared/${encodeURIComponent(link)}/files/${ref}`;
  return (
    <Page title={content.title || msg("share.untitled")} lead={<About share={share} />}>
      <SharedView content={content} level={2} imageAddress={fileAddress} fileAddress={fileAddress} />
    </Page>
  );
}

/** About says what the page is, and until when. */
function About({ share }: { share: Schema["Share"] }) {
  const time = formatTime(share.created);
  return (
    <>
      {me.value ? <By id={share.owner} time={time} /> : msg("share.sharedAt", { time })}{" "}
      {msg("share.until", { time: formatTime(share.expires) })}
    </>
  );
}

function By({ id, time }: { id: string; time: string }) {
  useUserNames();
  return <>{msg("share.sharedBy", { name: userName(id), time })}</>;
}
