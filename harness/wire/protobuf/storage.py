"""Message types of volumes and their classes; `schema.py` says how to read a line.

Field numbers as in k8s.io/api/{core,storage}/v1 of v1.36. Of in-tree volume sources those are left out whose form in a
volume is another than in a pod.
"""

KINDS = {
    "v1": frozenset({"PersistentVolume"}),
    "storage.k8s.io/v1": frozenset(
        {"CSIStorageCapacity", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"}
    ),
}

MESSAGES = """
PersistentVolume: 1 metadata ObjectMeta; 2 spec PersistentVolumeSpec; 3 status PersistentVolumeStatus
PersistentVolumeSpec: 1 capacity {Quantity}; 2 . PersistentVolumeSource; 3 accessModes []string;
    4 claimRef *ObjectReference; 5 persistentVolumeReclaimPolicy string; 6 storageClassName string;
    7 mountOptions []string; 8 volumeMode *string; 9 nodeAffinity *VolumeNodeAffinity;
    10 volumeAttributesClassName *string
PersistentVolumeSource: 1 gcePersistentDisk *GCEPersistentDiskVolumeSource;
    2 awsElasticBlockStore *AWSElasticBlockStoreVolumeSource; 3 hostPath *HostPathVolumeSource;
    5 nfs *NFSVolumeSource; 10 fc *FCVolumeSource; 11 flocker *FlockerVolumeSource;
    14 vsphereVolume *VsphereVirtualDiskVolumeSource; 15 quobyte *QuobyteVolumeSource;
    16 azureDisk *AzureDiskVolumeSource; 17 photonPersistentDisk *PhotonPersistentDiskVolumeSource;
    18 portworxVolume *PortworxVolumeSource; 20 local *LocalVolumeSource; 22 csi *CSIPersistentVolumeSource
LocalVolumeSource: 1 path !string; 2 fsType *string
CSIPersistentVolumeSource: 1 driver !string; 2 volumeHandle !string; 3 readOnly bool; 4 fsType string;
    5 volumeAttributes {string}; 6 controllerPublishSecretRef *SecretReference;
    7 nodeStageSecretRef *SecretReference; 8 nodePublishSecretRef *SecretReference;
    9 controllerExpandSecretRef *SecretReference; 10 nodeExpandSecretRef *SecretReference
SecretReference: 1 name string; 2 namespace string
VolumeNodeAffinity: 1 required *NodeSelector
PersistentVolumeStatus: 1 phase string; 2 message string; 3 reason string; 4 lastPhaseTransitionTime *Time
StorageClass: 1 metadata ObjectMeta; 2 provisioner !string; 3 parameters {string}; 4 reclaimPolicy *string;
    5 mountOptions []string; 6 allowVolumeExpansion *bool; 7 volumeBindingMode *string;
    8 allowedTopologies []TopologySelectorTerm
TopologySelectorTerm: 1 matchLabelExpressions []TopologySelectorLabelRequirement
TopologySelectorLabelRequirement: 1 key !string; 2 values ![]string
VolumeAttachment: 1 metadata ObjectMeta; 2 spec VolumeAttachmentSpec; 3 status VolumeAttachmentStatus
VolumeAttachmentSpec: 1 attacher !string; 2 source VolumeAttachmentSource; 3 nodeName !string
VolumeAttachmentSource: 1 persistentVolumeName *string; 2 inlineVolumeSpec *PersistentVolumeSpec
VolumeAttachmentStatus: 1 attached !bool; 2 attachmentMetadata {string}; 3 attachError *VolumeError;
    4 detachError *VolumeError
VolumeError: 1 time ~Time; 2 message string; 3 errorCode *int
VolumeAttributesClass: 1 metadata ObjectMeta; 2 driverName !string; 3 parameters {string}
CSIStorageCapacity: 1 metadata ObjectMeta; 2 nodeTopology *LabelSelector; 3 storageClassName !string;
    4 capacity *Quantity; 5 maximumVolumeSize *Quantity
"""
