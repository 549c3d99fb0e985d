import { same, test } from "../../../test/units/check";
import { addressOf, filterOf, timesOf } from "./filter";

test("audit: the days of the filter are in the address, and include the last day", () => {
  const filter = filterOf({ since: "2026-10-31", until: "2026-10-31", action: "" });
  same(addressOf(filter), "/audit?since=2026-10-31&until=2026-10-31");
  const { since, until } = timesOf(filter);
  same([since, until], [new Date(2026, 9, 31).toISOString(), new Date(2026, 10, 1).toISOString()]);
  same(timesOf(filterOf({ since: "yesterday", until: "2026-13-01" })), {});
});
