import { words } from "../words";

export const w = words(
  {
    title: "Your sign-in", needed: "Sign-in needed", ended: "Sign in again", signedIn: "Signed in", signIn: "Sign in", signInTo: (name: string) => `Sign in to ${name}`, toolsLater: "They are shown once you are signed in.", signOut: "Sign out",
    says: {
      needed: "This server wants to know who calls it. Sign in to it in your browser; from then on its tools are called with your own token, which nobody else gets.",
      ended: "Your sign-in is over, or the server does not take it any more. Sign in again.",
      signed_in: "Its tools are called with your own token, which nobody else gets.",
    },
    at: "Signed in at", scopes: "It may", expires: "The token ends", renewed: "it is renewed without you",
    signedOut: "Signed out; the token is good for nothing now", signedOutHere: "Signed out. The token is deleted here, but could not be revoked there: it may be good until it ends", wasOut: "You were not signed in",
    mine: (n: number) => `Where you are signed in: ${n}`, mineSays: "Also to servers that are gone or were changed since: sign out of what you do not need.", unreadable: "a sign-in that cannot be read any more",
    done: "You are signed in to the server", back: "You are not signed in to the server. ",
    reasons: {
      signin_denied: "The sign-in was refused there, or you broke it off.", signin_unknown: "Nobody began this sign-in in this browser in the last ten minutes, or it was used already. Begin again.",
      signin_issuer: "The answer came from somewhere else than where the sign-in was begun, and was not used.", signin_failed: "Where you signed in, no token was given. Try again.",
      sign_in: "You were signed out of this hub meanwhile. Sign in here first, then there.", changed: "The server was changed meanwhile. Look at it, and begin again.", not_found: "The server is not there any more, or not for you.",
    } as Record<string, string>,
    other: "Something went wrong. Try again; the log of the hub says more.",
  },
  {
    title: "您的登录", needed: "需要登录", ended: "请重新登录", signedIn: "已登录", signIn: "登录", signInTo: (name: string) => `登录 ${name}`, toolsLater: "登录后显示。", signOut: "退出登录",
    says: {
      needed: "此服务器需要知道调用者是谁。请在浏览器中登录，之后将使用您自己的令牌调用其工具，其他人得不到此令牌。",
      ended: "您的登录已过期，或服务器不再接受。请重新登录。",
      signed_in: "将使用您自己的令牌调用其工具，其他人得不到此令牌。",
    },
    at: "登录于", scopes: "权限", expires: "令牌到期", renewed: "会自动续期",
    signedOut: "已退出登录，令牌已失效", signedOutHere: "已退出登录。令牌已在此删除，但未能在对方撤销，到期前可能仍然有效", wasOut: "您并未登录",
    mine: (n) => `已登录的服务器：${n}`, mineSays: "也包括已删除或后来有改动的服务器：不需要的请退出登录。", unreadable: "已无法读取的登录",
    done: "您已登录此服务器", back: "未能登录此服务器。",
    reasons: {
      signin_denied: "对方拒绝了登录，或您中止了登录。", signin_unknown: "最近十分钟内没有人在此浏览器中发起这次登录，或它已被使用。请重新开始。",
      signin_issuer: "应答并非来自发起登录的地方，未被采用。", signin_failed: "登录的地方没有给出令牌。请重试。",
      sign_in: "您已退出本平台。请先在此登录，再登录服务器。", changed: "服务器在此期间有改动。请查看后重新开始。", not_found: "服务器已不存在，或对您不可见。",
    } as Record<string, string>,
    other: "出了问题。请重试；平台日志中有更多信息。",
  },
);
