"""Other shapes of objects than their own: Tables for kubectl, PartialObjectMetadata for metadata-only clients.

Views decode what they show; the plain shape of an object never passes here. Mirrors
kk/pkg/printers/internalversion/printers.go and as/endpoints/handlers/response.go of v1.36.2.
"""
