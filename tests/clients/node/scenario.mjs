// The scenario, spoken by npm's @azure/batch 10.2.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { BatchServiceClient, BatchSharedKeyCredentials } from "@azure/batch";

const TASKS = 250;
const { BATCH_URL, BATCH_ACCOUNT, BATCH_KEY } = process.env;
const client = new BatchServiceClient(new BatchSharedKeyCredentials(BATCH_ACCOUNT, BATCH_KEY), BATCH_URL);

async function fails(call, code) {
  await assert.rejects(call, (error) => {
    assert.equal(error.body?.code ?? error.code, code);
    return true;
  });
}

async function waitFor(condition) {
  for (const deadline = Date.now() + 60_000; !(await condition()); await sleep(100)) {
    assert.ok(Date.now() < deadline, "took too long");
  }
}

await client.pool.add({
  id: "poolnode",
  vmSize: "Standard_D2s_v3",
  targetDedicatedNodes: 2,
  virtualMachineConfiguration: {
    imageReference: { publisher: "microsoft-dsvm", offer: "ubuntu-hpc", sku: "2404", version: "latest" },
    nodeAgentSKUId: "batch.node.ubuntu 24.04",
  },
});
await client.job.add({ id: "jobnode", poolInfo: { poolId: "poolnode" } });

const tasks = Array.from({ length: TASKS }, (_, n) => ({
  id: `t${String(n).padStart(3, "0")}`,
  commandLine: "/bin/echo hello",
}));
for (let start = 0; start < TASKS; start += 100) {
  const added = await client.task.addCollection("jobnode", tasks.slice(start, start + 100));
  assert.ok(added.value.every((result) => result.status.toLowerCase() === "success"));
}

let page = await client.task.list("jobnode", { taskListOptions: { maxResults: 40, select: "id,state" } });
const listed = [...page];
while (page.odatanextLink) {
  page = await client.task.listNext(page.odatanextLink);
  listed.push(...page);
}
assert.deepEqual(listed.map((task) => task.id), tasks.map((task) => task.id));

await waitFor(async () => (await client.job.getTaskCounts("jobnode")).taskCounts.succeeded === TASKS);
const filter = "state eq 'completed' and startswith(id, 't00')";
assert.equal((await client.task.list("jobnode", { taskListOptions: { filter } })).length, 10);
const names = (await client.file.listFromTask("jobnode", "t000", { recursive: true })).map((file) => file.name);
assert.ok(names.includes("stdout.txt"), names.join());

await fails(() => client.job.get("no-such-job"), "JobNotFound");
await fails(() => client.job.add({ id: "jobnode", poolInfo: { poolId: "poolnode" } }), "JobExists");
await client.job.deleteMethod("jobnode");
await client.pool.deleteMethod("poolnode");
console.log("ok");
