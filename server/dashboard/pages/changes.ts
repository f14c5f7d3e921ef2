import type { FastifyInstance } from "fastify";
import { html } from "../html.ts";
import { layout, time } from "../layout.ts";
import type { DashboardParts } from "../parts.ts";
import { requireVisit } from "../visit.ts";

/** Newest changes of one page. */
const most = 500;

/** Who changed what, for owners. */
export function addChangesPage(scope: FastifyInstance, parts: DashboardParts): void {
  scope.get("/changes", { onRequest: requireVisit(parts, "owner") }, async ({ visit }, reply) => {
    const entries = await parts.changes(most);
    const rows = entries.map(
      ({ at, actor, action, subject, detail }) =>
        html`<tr><td>${time(at)}</td><td>${actor}</td><td>${action}</td><td>${subject}</td><td>${detail}</td></tr>`,
    );
    const content = html`<div class="scroll" tabindex="0" role="region" aria-label="Changes"><table>
<caption>The newest ${most} changes and sign-ins. Times are UTC.</caption>
<thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">Of</th><th scope="col">More</th></tr></thead>
<tbody>${rows}</tbody>
</table></div>`;
    return reply
      .type("text/html; charset=utf-8")
      .send(layout({ title: "Changes", visitor: visit, place: "/dashboard/changes", content }));
  });
}
