export { storageContract } from './storage/storage-contract.js';
export type { StorageContractCase, StorageContractSubject } from './storage/contract/contract-case.js';
