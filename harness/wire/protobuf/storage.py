"""Message types of volumes and their classes; `schema.py` says how to read a line.

Field numbers as in k8s.io/api/{core,storage}/v1 of v1.36.
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
    4 glusterfs *GlusterfsPersistentVolumeSource; 5 nfs *NFSVolumeSource; 6 rbd *RBDPersistentVolumeSource;
    7 iscsi *ISCSIPersistentVolumeSource; 8 cinder *CinderPersistentVolumeSource;
    9 cephfs *CephFSPersistentVolumeSource; 10 fc *FCVolumeSource; 11 flocker *FlockerVolumeSource;
    12 flexVolume *FlexPersistentVolumeSource; 13 azureFile *AzureFilePersistentVolumeSource;
    14 vsphereVolume *VsphereVirtualDiskVolumeSource; 15 quobyte *QuobyteVolumeSource;
    16 azureDisk *AzureDiskVolumeSource; 17 photonPersistentDisk *PhotonPersistentDiskVolumeSource;
    18 portworxVolume *PortworxVolumeSource; 19 scaleIO *ScaleIOPersistentVolumeSource;
    20 local *LocalVolumeSource; 21 storageos *StorageOSPersistentVolumeSource; 22 csi *CSIPersistentVolumeSource
GlusterfsPersistentVolumeSource: 1 endpoints !string; 2 path !string; 3 readOnly bool;
    4 endpointsNamespace *string
RBDPersistentVolumeSource: 1 monitors ![]string; 2 image !string; 3 fsType string; 4 pool string;
    5 user string; 6 keyring string; 7 secretRef *SecretReference; 8 readOnly bool
ISCSIPersistentVolumeSource: 1 targetPortal !string; 2 iqn !string; 3 lun !int; 4 iscsiInterface string;
    5 fsType string; 6 readOnly bool; 7 portals []string; 8 chapAuthDiscovery bool;
    10 secretRef *SecretReference; 11 chapAuthSession bool; 12 initiatorName *string
CinderPersistentVolumeSource: 1 volumeID !string; 2 fsType string; 3 readOnly bool;
    4 secretRef *SecretReference
CephFSPersistentVolumeSource: 1 monitors ![]string; 2 path string; 3 user string; 4 secretFile string;
    5 secretRef *SecretReference; 6 readOnly bool
FlexPersistentVolumeSource: 1 driver !string; 2 fsType string; 3 secretRef *SecretReference; 4 readOnly bool;
    5 options {string}
AzureFilePersistentVolumeSource: 1 secretName !string; 2 shareName !string; 3 readOnly bool;
    4 secretNamespace !*string
ScaleIOPersistentVolumeSource: 1 gateway !string; 2 system !string; 3 secretRef !*SecretReference;
    4 sslEnabled bool; 5 protectionDomain string; 6 storagePool string; 7 storageMode string;
    8 volumeName string; 9 fsType string; 10 readOnly bool
StorageOSPersistentVolumeSource: 1 volumeName string; 2 volumeNamespace string; 3 fsType string;
    4 readOnly bool; 5 secretRef *ObjectReference
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
VolumeError: 1 time Time; 2 message string; 3 errorCode *int
VolumeAttributesClass: 1 metadata ObjectMeta; 2 driverName !string; 3 parameters {string}
CSIStorageCapacity: 1 metadata ObjectMeta; 2 nodeTopology *LabelSelector; 3 storageClassName !string;
    4 capacity *Quantity; 5 maximumVolumeSize *Quantity
"""
