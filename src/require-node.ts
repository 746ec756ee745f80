import { nodeFault } from './node-version';

// The first import of a program: what is loaded after it may need what an old Node does not have.
const fault = nodeFault(process.versions.node);
if (fault !== undefined) {
  console.error(fault);
  process.exit(1);
}
