import { render } from "preact";
import { act } from "preact/test-utils";
import { same, test } from "../../../test/units/check";
import { Refusal } from "../../shared/api/client";
import { SignInMessage } from "./signinerror";

test("sign-in: after too many attempts, the message says how long to wait", async () => {
  const box = document.createElement("div");
  const problem = { status: 429, code: "too_often", title: "Too Many Requests", detail: "too many attempts" };
  const said = async (wait?: number) => {
    await act(() => render(<SignInMessage error={new Refusal(problem, wait)} />, box));
    return box.textContent;
  };
  same(await said(540), "Too many attempts. Try again in 9 minutes.");
  same(await said(30), "Too many attempts. Try again in 30 seconds.");
  same(await said(), "Too many attempts. Try again later.");
  render(null, box);
});
