export {
  storageContract,
  type StorageContractCase,
  type StorageContractSubject,
} from 'durable-jobs/contract';
