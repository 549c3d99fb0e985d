import { Page } from "../shell/page";

export default function Chat() {
  return <Page title="chat">…</Page>;
}
